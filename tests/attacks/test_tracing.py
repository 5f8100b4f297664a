"""Pirates are traced, nobody innocent is accused, and a private pirate is neither useful nor traced."""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import hypergeom

from attacks.helpers import slack
from hubbub import attacks
from hubbub.accounting import pure_epsilon, rho
from hubbub.attacks import Pirate, TardosCode, TracingScheme, WaryPirate, private_pirate
from hubbub.attacks.tracing import _accused, _decrypted
from hubbub.errors import ParameterError
from hubbub.noise import uniform_below
from seeded import SeededBits

FULL = ("majority", "minority", "interleaving", "any", "coin")


def scheme(users: int, seed: str) -> TracingScheme:
    return TracingScheme(users=users, beta="0.05", bits=SeededBits(seed))


def test_every_user_decrypts_their_own_part_and_nobody_else_s() -> None:
    bits, tracer = SeededBits("own"), scheme(5, "own keys")
    messages = uniform_below(2, (400, 5), bits=bits)
    sent = tracer.encrypt(messages, bits=bits)
    assert (_decrypted(tracer.keys, sent) == messages).all()
    # Under a wrong key the bit is a coin: 400 x 5 of them.
    wrong = {user: tracer.keys[user % 5 + 1] for user in tracer.keys}
    assert abs((_decrypted(wrong, sent) == messages).mean() - 0.5) <= slack(2000, 5e-10)
    assert len({block.tobytes() for block in sent.reshape(-1, 16)}) == 2000  # no block is sent twice
    assert (_decrypted(tracer.keys, tracer.encrypt([1, 0, 1])) == [[1] * 5, [0] * 5, [1] * 5]).all()


@pytest.mark.parametrize("strategy", FULL)
def test_a_cooperative_pirate_is_traced(strategy: str) -> None:
    """n = 10: 1,060 columns of each kind, half of the users are pirates."""
    tracer, guilty = scheme(10, f"keys {strategy}"), [1, 4, 5, 8, 10]
    pirate = Pirate(tracer.coalition(guilty), strategy, SeededBits(f"pirate {strategy}"))
    found = tracer.trace(pirate, pirates=guilty, bits=SeededBits(f"trace {strategy}"))
    assert found.repeats == 1060
    assert found.cooperates
    assert found.success == 1
    assert found.gap >= 0.1
    assert found.gaps[found.user - 1] == found.gap  # type: ignore[operator]
    # A stateless pirate may be handed over as a program.
    copied = pickle.loads(pickle.dumps(pirate))
    assert tracer.trace(copied, pirates=guilty, bits=SeededBits(f"again {strategy}")).success == 1


def test_shares_that_begin_at_0_and_end_at_1_have_a_gap_of_one_over_n() -> None:
    """The pigeonhole: all ways for n = 4 users and s = 3 columns, and without it nobody need be accused."""
    for middle in itertools.product(range(4), repeat=3):
        accused = _accused([0, *middle, 3], 3)
        steps = np.diff([0, *middle, 3])
        assert accused is not None
        assert steps[accused - 1] == steps.max()
        assert 4 * steps.max() >= 3
    assert _accused([1, 1, 1, 1], 3) is None


def test_repeats_are_those_of_hoeffding_and_of_serfling() -> None:
    repeats = attacks.tracing_repeats
    assert [repeats(n, "0.05") for n in (10, 20)] == [1060, 4794]
    assert [(n + 1) * repeats(n, "0.05") for n in (10, 20)] == [11_660, 100_674]
    assert [repeats(n, "0.05", bound="serfling") for n in (10, 20)] == [531, 2398]
    for n in (2, 5, 10, 20):
        s = repeats(n, "0.05")
        assert n * math.exp(-s / (2 * n * n)) <= 0.05 < n * math.exp(-(s - 1) / (2 * n * n))
        s = repeats(n, "0.05", bound="serfling")
        assert n * math.exp(-(s**2) / (n * n * (s + 1))) <= 0.05


def test_nobody_innocent_is_accused_more_often_than_beta_exactly() -> None:
    """The worst decoder's chance, all numbers of ones tried: .0057 for all ten users at 531."""
    assert 10 * attacks.innocent_chance(10, 531) == pytest.approx(0.0057, abs=5e-5)
    assert 20 * attacks.innocent_chance(20, 2398) == pytest.approx(0.0059, abs=5e-5)
    for n, s in ((2, 12), (5, 40), (10, 531)):
        hoeffding, serfling = math.exp(-s / (2 * n * n)), math.exp(-(s**2) / (n * n * (s + 1)))
        assert attacks.innocent_chance(n, s) <= min(hoeffding, serfling)
    # By hand, n = 2, s = 2: 4 bits with m ones; the halves differ by one or more.
    tails = [float(hypergeom.sf(math.ceil((m + 1) / 2) - 1, 4, m, 2)) for m in range(5)]
    assert attacks.innocent_chance(2, 2) == pytest.approx(max(tails)) == pytest.approx(0.5)


def test_without_a_user_s_key_its_two_columns_are_exchangeable() -> None:
    """A pirate that would frame user 3 but does not hold 3's key: its gap there is that of two random halves."""
    tracer, seen = scheme(4, "frame"), []
    pirate = Pirate(tracer.coalition([1, 4]), "interleaving", SeededBits("framing"))
    for i in range(60):
        found = tracer.trace(pirate, repeats=40, bits=SeededBits(f"frame {i}"))
        seen.append(found.gaps[2])
    # Variance of a difference of two means of 40 bits at most 1/80; 60 runs.
    assert abs(np.mean(seen)) <= 6.2 * math.sqrt(1 / 80 / 60)


def test_a_private_pirate_does_not_cooperate_and_is_not_traced() -> None:
    tracer, guilty = scheme(10, "private"), [1, 4, 5, 8, 10]
    keys = tracer.coalition(guilty)
    for amount in ("0.1", "1", "10"):
        pirate = private_pirate(keys, columns=11_660, rho=amount, bits=SeededBits(f"noise {amount}"))
        assert rho(pirate.loss) == Fraction(amount)
        found = tracer.trace(pirate, pirates=guilty, bits=SeededBits(f"private {amount}"))
        assert not found.cooperates
        assert found.user is None
        assert found.success == 0
        assert 0.5 <= pirate.cooperation() < 0.6
        # p_0 is a mean of 1,060 coins that each come up 1 - cooperation.
        assert abs(found.shares[0] - (1 - pirate.cooperation())) <= slack(1060)
        assert np.abs(found.shares - pirate.expected_shares(10)).max() <= slack(1060, 1e-10)
    pure = private_pirate(keys, columns=11_660, epsilon=1)
    assert pure_epsilon(pure.loss) == 1
    # With noise that protects nobody it cooperates again, and is traced.
    loud = private_pirate(keys, columns=11_660, rho=100_000, bits=SeededBits("loud"))
    assert loud.cooperation() > 0.99999
    assert tracer.trace(loud, pirates=guilty, bits=SeededBits("loud columns")).success == 1


def test_a_useful_decoder_that_does_not_cooperate_escapes() -> None:
    tracer = scheme(6, "wary")
    wary = WaryPirate(tracer.coalition([2, 3, 5]))
    honest = uniform_below(2, 50, bits=SeededBits("honest"))
    assert (wary(tracer.encrypt(honest)) == honest).all()
    found = tracer.trace(wary, bits=SeededBits("wary trace"))
    assert not found.cooperates
    assert found.user is None
    assert wary.warned


def test_the_contradiction_is_fifteen_hundredths_of_one_over_n() -> None:
    for n in (2, 10, 1000):
        assert (
            attacks.accusation_floor(n) * n
            == pytest.approx((1 / 2 - 1 / 10) / math.e)
            == pytest.approx(0.14715, abs=1e-5)
        )
    # A tracer with beta below it, and a (1, 1/10n)-DP pirate that cooperates, cannot both be.
    found = scheme(10, "floor").trace(Pirate(scheme(10, "floor").coalition([3])), repeats=5)
    assert found.ceiling(1, "1/100") == pytest.approx(math.e * 0.05 + 0.01)


def chances(keys: set[int], users: int, rate: Fraction, share: Fraction) -> list[Fraction]:
    """P(answer 1 to TrE(i)): with probability `share` by the exact majority, else odds rate^(2 count - keys)."""
    out = []
    for i in range(users + 1):
        count = sum(user <= i for user in keys)
        odds = rate ** (2 * count - len(keys))
        out.append((1 - share) * odds / (1 + odds) + share * int(2 * count > len(keys)))
    return out


@pytest.mark.parametrize("rate", [Fraction(11, 10), Fraction(3, 2), Fraction(3)])
def test_the_accusation_of_a_private_pirate_is_as_private_as_the_pirate(rate: Fraction) -> None:
    """The reduction, whole, in rationals: n = 2 keys of 3 users, s = 2; all pairs of coalitions, every user."""
    users, repeats = 3, 2
    # One exchanged key moves a count by 1, an answer's odds by rate^2: the chances of 8 answers by the product.
    steps = [rate ** (2 * c - 2) for c in range(3)]
    laws = [(o / (1 + o), 1 / (1 + o)) for o in steps]
    one = max(
        a[b] / c[b]
        for a, c in itertools.permutations(laws, 2)
        for b in (0, 1)
        if abs(laws.index(a) - laws.index(c)) == 1
    )
    whole = one ** ((users + 1) * repeats)
    coalitions = [set(s) for s in itertools.combinations(range(1, users + 1), 2)]
    found = [attacks.accusation_law(chances(s, users, rate, Fraction(0)), repeats) for s in coalitions]
    for first, second in itertools.permutations(found, 2):
        assert sum(first.values()) == 1
        for user in (None, 1, 2, 3):
            assert first.get(user, 0) <= whole * second.get(user, 0)
    # Only the columns in which the two coalitions differ count: here 2 of 8, whose bound is nearly met.
    close = one**repeats
    worst = max(a[u] / b[u] for a, b in itertools.permutations(found, 2) for u in (None, 1, 2, 3))
    assert worst <= close**2
    assert worst > 1


def test_with_delta_the_reduction_adds_it_and_without_privacy_it_fails() -> None:
    users, repeats, rate = 3, 2, Fraction(3, 2)
    share = Fraction(1, 30)
    coalitions = [set(s) for s in itertools.combinations(range(1, users + 1), 2)]
    quiet = [attacks.accusation_law(chances(s, users, rate, Fraction(0)), repeats) for s in coalitions]
    exact = [attacks.accusation_law(chances(s, users, rate, Fraction(1)), repeats) for s in coalitions]
    both = [
        {u: (1 - share) * a.get(u, 0) + share * b.get(u, 0) for u in (None, 1, 2, 3)}
        for a, b in zip(quiet, exact, strict=True)
    ]
    whole = max(a[u] / b[u] for a, b in itertools.permutations(quiet, 2) for u in a)
    for first, second in itertools.permutations(both, 2):
        assert all(first[u] <= whole * second[u] + share for u in first)
    # The exact pirate accuses one of its own always, and never somebody whose key it lacks.
    for keys, law in zip(coalitions, exact, strict=True):
        assert set(law) <= keys
        assert sum(law.values()) == 1


def test_tardos_codes_have_their_lengths() -> None:
    assert attacks.tardos_length(1000, 5, "0.001") == 100 * 25 * 14
    assert attacks.tardos_length(1000, 5, "0.001", kind="asymptotic") == math.ceil(math.pi**2 / 2 * 25 * math.log(1e6))
    assert math.pi**2 / 2 / 100 == pytest.approx(0.0493, abs=5e-5)
    code = TardosCode(users=10, coalition=3, error="0.01", bits=SeededBits("length"))
    assert code.length == 2 * attacks.tardos_length(10, 3, "0.01", kind="asymptotic") == code.words.shape[1]


@pytest.mark.parametrize("strategy", ["majority", "minority", "interleaving"])
def test_tardos_codes_accuse_pirates_and_nobody_else(strategy: str) -> None:
    """300 users, 4 pirates, twice the asymptotic length; innocents' scores have mean 0 and variance L."""
    bits, guilty = SeededBits(f"tardos {strategy}"), [7, 80, 81, 299]
    code = TardosCode(users=300, coalition=4, error="0.001", bits=bits)
    word = code.collude(guilty, strategy, bits=bits)
    accused = code.accuse(word)
    assert accused
    assert set(accused) <= set(guilty)
    scores = code.scores(word)
    innocent = np.delete(scores, [u - 1 for u in guilty])
    assert abs(innocent.mean()) <= 6.2 * math.sqrt(code.length / 296)
    assert 0.7 < innocent.var() / code.length < 1.4
    # The coalition's scores add up to 2 L/pi for every strategy.
    assert scores[[u - 1 for u in guilty]].sum() / code.length == pytest.approx(2 / math.pi, abs=0.15)
    # Chernoff's threshold: below Gaussian tails it cannot be, and Bernstein's is above.
    assert math.sqrt(2 * math.log(300_000)) * 0.9 < code.threshold(word) / math.sqrt(code.length) < 7


def test_a_threshold_bounds_the_exact_chance_of_an_innocent() -> None:
    """Ten positions: the law of an innocent's score by enumeration, and what of it is above the threshold."""
    code = TardosCode(users=5, coalition=2, error="0.05", length=10, bits=SeededBits("exact tail"))
    word = uniform_below(2, 10, bits=SeededBits("exact word"))
    one, zero = code._terms(word)
    mass = 0.0
    for bits in itertools.product((0, 1), repeat=10):
        score = sum(a if b else z for a, z, b in zip(one, zero, bits, strict=True))
        if score >= code.threshold(word):
            mass += math.prod(p if b else 1 - p for p, b in zip(code.biases, bits, strict=True))
    assert mass <= 0.05 / 5


def test_a_code_traces_a_decoder_with_far_fewer_columns() -> None:
    tracer, guilty = scheme(60, "code keys"), [9, 33]
    code = TardosCode(users=60, coalition=2, error="0.01", bits=SeededBits("code"))
    accused = code.trace(tracer, Pirate(tracer.coalition(guilty), "majority"), bits=SeededBits("code columns"))
    assert accused
    assert set(accused) <= set(guilty)
    assert code.length < 500 < 61 * attacks.tracing_repeats(60, "0.01") // 5000


def test_ciphertexts_are_longer_than_there_are_users() -> None:
    """Stateless pirates rule out families of 2^l queries: with l = 128 n > n bits, this scheme says nothing new."""
    tracer = scheme(4, "length of ciphertexts")
    assert tracer.ciphertext_bits == 8 * tracer.encrypt([1])[0].size == 512 > tracer.users


def test_a_private_pirate_is_useful_or_untraced_over_all_rho() -> None:
    """Exactly: with the noise the largest expected gap grows from 0 past 1/n, and cooperation from 1/2 to 1 with it."""
    tracer, gaps, useful = scheme(10, "curves"), [], []
    for power in range(-1, 6):
        pirate = private_pirate(tracer.coalition([1, 4, 5, 8, 10]), columns=11_660, rho=10**power)
        shares = pirate.expected_shares(10)
        assert shares[0] == pytest.approx(1 - pirate.cooperation())
        assert shares[10] == pytest.approx(pirate.cooperation())  # five keys: 1 and 0 are alike
        gaps.append(float(np.diff(shares).max()))
        useful.append(pirate.cooperation())
    assert gaps == sorted(gaps)
    assert useful == sorted(useful)
    # From rho = 1,000 on the gap shows; a decoder that is nearly always right has long had one.
    assert [g >= 0.1 for g in gaps] == [False] * 4 + [True] * 3
    assert [u > 0.99 for u in useful] == [False] * 5 + [True] * 2


def test_staircases_are_drawn() -> None:
    pytest.importorskip("matplotlib")
    tracer = scheme(4, "drawn")
    found = tracer.trace(Pirate(tracer.coalition([2])), repeats=3, pirates=[2])
    line = found.plot().lines[0]
    assert list(line.get_ydata()) == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    assert len(attacks.draw_staircases({"a": found, "b": found}).lines) == 2
    assert len(attacks.draw_private_pirates(tracer, [2, 3], [0.1, 10]).lines) == 3


@pytest.mark.parametrize(
    "act",
    [
        lambda: TracingScheme(users=1, beta="0.1"),
        lambda: TracingScheme(users=3, beta=0),
        lambda: TracingScheme(users=3, beta="0.1").coalition([4]),
        lambda: TracingScheme(users=3, beta="0.1").encrypt([2]),
        lambda: TracingScheme(users=3, beta="0.1").encrypt([[0, 1]]),
        lambda: TracingScheme(users=300, beta="0.1").columns(10**5),
        lambda: TracingScheme(users=3, beta="0.1").trace(lambda c: [1]),
        lambda: TracingScheme(users=3, beta="0.1").trace(lambda c: np.full(len(c), 2)),
        lambda: TracingScheme(users=3, beta="0.1").trace(lambda c: np.zeros(len(c))).success,
        lambda: Pirate({}, "majority"),
        lambda: Pirate({1: b"0" * 16}, "best"),
        lambda: private_pirate({}, columns=3, rho=1),
        lambda: private_pirate({1: b"0" * 16}, columns=3),
        lambda: private_pirate({1: b"0" * 16}, columns=3, rho=1)(np.zeros((2, 1, 16), np.uint8)),
        lambda: attacks.tracing_repeats(3, "0.1", bound="chernoff"),
        lambda: attacks.accusation_law([Fraction(1, 2)] * 30, 2),
        lambda: attacks.tardos_length(10, 2, 0),
        lambda: attacks.tardos_length(10, 2, "0.1", kind="best"),
        lambda: TardosCode(users=10**6, coalition=10, error="0.1", length=10**6),
        lambda: TardosCode(users=5, coalition=2, error="0.1", length=4).scores([1, 0]),
        lambda: TardosCode(users=5, coalition=2, error="0.1", length=4).collude([6]),
        lambda: TardosCode(users=5, coalition=2, error="0.1", length=4).trace(TracingScheme(users=4, beta="0.1"), len),
    ],
)
def test_what_does_not_fit_is_refused(act) -> None:
    with pytest.raises(ParameterError):
        act()
