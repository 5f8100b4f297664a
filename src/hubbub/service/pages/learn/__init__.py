"""Learn: four steps, a screen each, on invented data whose truth is shown. Nothing is charged, and nothing is kept.

    1  two exact counts, subtracted, tell what Zoe said
    2  the same with noise, asked ten times: the average closes in, and hence the budget
    3  what epsilon buys: the error bar of an answer beside what one can come to believe about Zoe
    4  a pretend budget on three tasks, scored

A page is a function of its address alone: what was drawn stands in it. So it works without JavaScript, as links and
plain forms that read, and whoever goes back or sends the address sees the same again. `address_of` draws and names the
page that shows what was drawn; `told` says, in plain values, what a page shows.

The people, the questions and the amounts are in `village`, the steps in `steps`, the drawings in `pictures`.
"""

from hubbub.service.pages.learn.steps import STEPS, address_of, told

__all__ = ["STEPS", "address_of", "told"]
