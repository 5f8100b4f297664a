"""Measured claims: each module runs ours and the rival (or the physical floor) in one run and prints the ratio.

python -m benchmarks             all of them
python -m benchmarks.noise       one of them
python -m benchmarks.peers install   the rivals, each in an environment of its own under .venvs/
"""
