"""Games: mechanisms for people who answer to their advantage.

`DigitalGoodsAuction` sells unlimited copies at one price that no buyer's bid moves much; `revenue` of a price.
"""

from hubbub.games.auction import DigitalGoodsAuction, revenue

__all__ = ["DigitalGoodsAuction", "revenue"]
