"""mechanisms: how exact integers become private answers.

`additive` holds the one function through which all noise on private integers passes; `ratio` the interval of a
quotient of two noisy sums. The classic mechanisms have their own issue.
"""

from hubbub.mechanisms.additive import Recorded, add_noise, recording
from hubbub.mechanisms.ratio import ratio_interval

__all__ = ["Recorded", "add_noise", "ratio_interval", "recording"]
