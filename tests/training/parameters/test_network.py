"""Modules of PyTorch as parametrisations, and its optimisers as methods; skipped where it is missing. Ten seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import training
from dynagrad.training.examples import DataPasses
from dynagrad.training.problem import Problem
from dynagrad.training.workers import in_threads
from training.tagging import ROWS, TAGGER, TAGS, WORDS, tagged

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")


class Scorer(torch.nn.Module):  # type: ignore[misc]
    """A hidden layer over embeddings of words, and a table of transitions."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = torch.nn.Embedding(len(WORDS), 3, dtype=torch.float64)
        self.hidden = torch.nn.Linear(3, 4, dtype=torch.float64)
        self.out = torch.nn.Linear(4, len(TAGS), dtype=torch.float64)
        self.trans = torch.nn.Parameter(torch.zeros(len(ROWS["trans/2"]), dtype=torch.float64))

    def forward(self, words: Any) -> Any:
        emit = torch.log_softmax(self.out(torch.tanh(self.hidden(self.embed(words)))), 1)
        return {"emit/2": emit.T, "trans/2": self.trans}


def model() -> dg.Model:
    network = training.Torch(ROWS, Scorer(), torch.arange(len(WORDS)))
    return dg.Model(TAGGER, {"net": network}, objective=training.Conditional(), prior=training.L2(0.01))


def test_gradients_and_products_with_the_hessian_are_those_of_differences() -> None:
    m = model()
    problem = Problem(m._spec, DataPasses(tagged()), in_threads(1))
    random = np.random.default_rng(0)
    at = m.parameters["net"]
    along = random.standard_normal(len(at))
    h = 1e-5

    def gradient(x: np.ndarray) -> np.ndarray:
        return m._spec.pull({"net": x}, problem.objective({"net": x})[1])["net"]

    up, down = (problem.objective({"net": at + s * h * along}, gradient=False)[0] for s in (1, -1))
    assert gradient(at) @ along == pytest.approx((up - down) / (2 * h), rel=1e-6)
    product = problem.product({"net": at}, problem.objective({"net": at})[1], {"net": along})["net"]
    assert product == pytest.approx((gradient(at + h * along) - gradient(at - h * along)) / (2 * h), rel=1e-5, abs=1e-6)


def test_a_network_is_trained_and_can_be_taken_out_again() -> None:
    m = model()
    before = m.score(tagged())
    m.fit(tagged(), method="l-bfgs", iterations=60)
    assert m.score(tagged()) > -0.7 > before
    p = m._spec.parametrisations["net"]
    module = p.to_module(m.parameters["net"])
    scores = module(torch.arange(len(WORDS)))["emit/2"].detach().numpy().ravel()
    assert np.log(m.weights["emit/2"].values) == pytest.approx(scores, abs=1e-12)
    assert p.names()[0] == "trans[0]" or p.names()[0].startswith("embed.weight[")
    other = model()
    other.fit(tagged(), method="l-bfgs", iterations=60, executor=1)  # the module itself need not be sent
    assert other.parameters["net"].tobytes() == m.parameters["net"].tobytes()


def test_a_module_is_run_once_for_weights_their_gradient_and_held_out_data() -> None:
    ran: list[int] = []

    class Counting(Scorer):
        def forward(self, words: Any) -> Any:
            ran.append(1)
            return super().forward(words)

    module = Counting()
    m = dg.Model(TAGGER, {"net": training.Torch(ROWS, module, torch.arange(len(WORDS)))}, prior=training.L2(1.0))
    asked: list[int] = []
    fit = m.fit(
        tagged(), tagged()[:1], method="l-bfgs", iterations=5, tolerance=0.0, callback=lambda r: asked.append(len(ran))
    )
    assert len(fit.history) == 5 and ran and asked[-1] < 2 * 5  # a search along a line may take a few more
    before, count = m.score(tagged()), len(ran)
    assert m.score(tagged()) == before and len(ran) == count
    with torch.no_grad():  # what a user changes is seen
        module.trans.add_(1.0)
    assert m.score(tagged()) == before and len(ran) == count + 1  # parameters are the model's, inputs the user's
    module.eval()
    m.score(tagged())
    assert len(ran) == count + 2


class Apart(torch.nn.Module):  # type: ignore[misc]
    """A hidden layer over numbers of each row, and what may make rows depend on each other."""

    def __init__(self, between: Any) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.hidden, self.between = torch.nn.Linear(5, 4, dtype=torch.float64), between
        self.out = torch.nn.Linear(4, 1, dtype=torch.float64)

    def forward(self, rows: Any) -> Any:
        return self.out(self.between(torch.tanh(self.hidden(rows))))


def of_rows(between: Any, inputs: Any = None, **options: bool) -> training.Torch:
    random = np.random.default_rng(2)
    given = torch.tensor(random.standard_normal((24, 5))) if inputs is None else inputs
    return training.Torch(ROWS, Apart(between), given, **options)


def test_a_rowwise_module_is_run_for_those_with_a_gradient_alone() -> None:
    ran: list[int] = []

    class Counting(torch.nn.Identity):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            ran.append(len(x))
            return x

    every, rowwise = of_rows(Counting()), of_rows(Counting(), rowwise=True)
    theta = every.start(np.random.default_rng(0)) + 0.1
    cotangent = np.where(np.arange(24) % 5 == 1, np.arange(24.0), 0.0)
    ran.clear()
    expected = every.pull(theta, cotangent)
    assert rowwise.pull(theta, cotangent) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert ran == [24, 5] and np.abs(expected).max() > 1
    assert not rowwise.pull(theta, np.zeros(24)).any() and len(ran) == 2
    models = [dg.Model(TAGGER, {"net": p}, objective=training.Conditional()) for p in (every, rowwise)]
    for m in models:
        m.fit(tagged(), method="sgd", size=1, iterations=5, tolerance=0.0)
    assert models[1].parameters["net"] == pytest.approx(models[0].parameters["net"], abs=1e-9)


class Arcs(torch.nn.Module):  # type: ignore[misc]
    """Numbers of arcs from their features, which remembers for how many rows it was run."""

    def __init__(self, ran: list[int]) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.hidden = torch.nn.Linear(4, 3, dtype=torch.float64)
        self.out = torch.nn.Linear(3, 1, dtype=torch.float64)
        self.ran = ran

    def forward(self, rows: Any) -> Any:
        self.ran.append(len(rows))
        return self.out(torch.tanh(self.hidden(rows)))


PATHS = """
goal += reached(S,3) * sentence(S).
reached(S,0) += sentence(S).
reached(S,J) += reached(S,I) * arc(S,I,J) * open(I,J).
"""
OPEN = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (0, 4)]
"""The last is on no path to 3."""
OBJECTIVES = {
    "likelihood": training.Likelihood(),
    "conditional": training.Conditional(),
    "risk": training.Risk("open/2"),
    "sum": training.Sum((1.0, training.Conditional()), (-0.5, training.Entropy())),
    "items": training.OfItems(["goal"], lambda x, e: -(x[0] ** 2)),
}


@pytest.mark.parametrize(("semiring", "objective"), [*(("log", name) for name in OBJECTIVES), ("real", "likelihood")])
def test_a_minibatch_runs_a_rowwise_module_for_the_rows_that_its_examples_use(semiring: str, objective: str) -> None:
    """Sentences have arcs of their own: a step from four of them looks at theirs, one forward run for all it does."""
    sentences, size, logs = 12, 4, semiring == "log"
    rows = {"arc/3": [(s, i, j) for s in range(sentences) for i in range(5) for j in range(5)]}  # 25 of each
    inputs = torch.tensor(np.random.default_rng(1).uniform(0, 1, (len(rows["arc/3"]), 4)))
    text = f":- semiring {semiring}. {PATHS}"
    facts = {"open/2": [(*a, 0.1 * n) if logs else a for n, a in enumerate(OPEN)]}
    observed = {"open/2": [(1, 2), (0, 1), (2, 3)]} if objective in ("conditional", "sum") else {}
    data = [training.Example({"sentence/1": [(s,)], **facts}, observed) for s in range(sentences)]
    models, ran = [], dict[bool, list[int]]()
    for rowwise in (False, True):
        ran[rowwise] = []
        network = training.Torch(rows, Arcs(ran[rowwise]), inputs, rowwise=rowwise, logs=logs)
        ran[rowwise].clear()
        model = dg.Model(text, {"net": network}, objective=OBJECTIVES[objective], prior=training.L2(0.1))
        model.fit(data, method="sgd", size=size, iterations=2, rate=0.01, seed=4)
        models.append(model.parameters["net"])
    steps = 2 * sentences // size
    assert ran[False] == [len(inputs)] * steps
    # once for all rows, to read off what examples use; then of the arcs of a sentence those on its paths
    assert ran[True] == [len(inputs)] + [(len(OPEN) - 1) * size] * steps
    assert models[1] == pytest.approx(models[0], abs=1e-12)


class Readers(torch.nn.Module):  # type: ignore[misc]
    """Scores of arcs between words, by an LSTM over their sentences, which remembers how many it read."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.embed = torch.nn.Embedding(9, 3, dtype=torch.float64)
        self.lstm = torch.nn.LSTM(3, 2, batch_first=True, bidirectional=True, dtype=torch.float64)
        self.ran: list[int] = []

    def forward(self, sentences: Any, places: Any) -> Any:
        self.ran.append(len(sentences))
        seen, _ = self.lstm(self.embed(sentences))
        s, i, j = places
        return (seen[s, i] * seen[s, j].flip(1)).sum(1)


def test_inputs_of_some_rows_may_come_from_a_function() -> None:
    """Arcs of a sentence need that sentence: those of a minibatch are read, once in a step, and no others."""
    count, size = 8, 2
    words = torch.tensor(np.random.default_rng(6).integers(0, 9, (count, 5)))
    rows = {"arc/3": [(s, i, j) for s in range(count) for i in range(5) for j in range(5)]}
    places = torch.tensor(rows["arc/3"])

    def inputs(numbers: Any) -> Any:
        s, i, j = places[numbers].T
        sentences, s = torch.unique(s, return_inverse=True)
        return words[sentences], (s, i, j)

    data = [{"sentence/1": [(s,)], "open/2": OPEN} for s in range(count)]
    found, ran = [], []
    for given, rowwise in (((words, places.T), False), ((inputs,), True)):
        module = Readers()
        network = training.Torch(rows, module, *given, rowwise=rowwise)
        module.ran.clear()
        m = dg.Model(f":- semiring log. {PATHS}", {"net": network}, objective=training.Entropy())
        m.fit(data, method="sgd", size=size, iterations=2, rate=0.1)
        found.append(m.parameters["net"])
        ran.append(list(module.ran))
    assert found[1] == pytest.approx(found[0], abs=1e-12)
    assert ran == [[count] * 8, [count] + [size] * 8]
    with pytest.raises(dg.Error, match="what gives inputs is called with the numbers of some rows, and"):
        training.Torch(rows, Readers(), lambda: words, rowwise=True)


def test_what_a_function_of_inputs_reads_may_change_between_two_passes() -> None:
    read = torch.ones((24, 4), dtype=torch.float64)
    rowwise, every = (training.Torch(ROWS, Arcs([]), *given, rowwise=True) for given in ((lambda n: read[n],), (read,)))
    models = [dg.Model(TAGGER, {"net": p}, objective=training.Conditional()) for p in (rowwise, every)]
    before = [m.score(tagged()) for m in models]
    read[::3] *= -2.0
    after = [m.score(tagged()) for m in models]
    assert after[0] == after[1] != before[0] == before[1]


def test_all_rows_are_run_where_it_is_not_known_which_are_used() -> None:
    ran: list[int] = []
    network = training.Torch(ROWS, Apart(torch.nn.Identity()), torch.ones((24, 5), dtype=torch.float64), rowwise=True)
    forward = network.module.forward
    network.module.forward = lambda x: (ran.append(len(x)), forward(x))[1]

    class Own(training.Conditional):
        """It might ask for anything."""

        def totals(self, task: Any, examples: Any) -> Any:
            return super().totals(task, examples)

    for objective, data in ((Own(), tagged()), (None, lambda: iter(tagged()))):  # the second is read anew each time
        ran.clear()
        dg.Model(TAGGER, {"net": network}, objective=objective).fit(data, method="sgd", size=1, iterations=1)
        assert ran.count(24) == 3
    ran.clear()
    pruned = TAGGER + ":- prune at(I,T) < -50."
    dg.Model(pruned, {"net": network}).fit(tagged(), method="sgd", size=1, iterations=1)
    assert ran.count(24) == 3


@pytest.mark.parametrize("between", [torch.nn.BatchNorm1d(4, dtype=torch.float64), torch.nn.LogSoftmax(0)])
def test_a_module_whose_rows_depend_on_each_other_is_not_rowwise(between: Any) -> None:
    with pytest.raises(dg.Error, match="a row depends on its own inputs alone"):
        of_rows(between, rowwise=True)


def test_a_module_with_batch_normalisation_is_rowwise_where_it_is_not_training() -> None:
    assert of_rows(torch.nn.BatchNorm1d(4, dtype=torch.float64).eval(), rowwise=True).rowwise


def test_rows_need_not_be_looked_up_to_leave_some_out_of_a_gradient() -> None:
    ran: list[int] = []
    inputs = torch.tensor(np.random.default_rng(1).uniform(0, 1, (24, 4)))
    network = training.Torch(ROWS, Arcs(ran), inputs, rowwise="gradient")
    every = training.Torch(ROWS, Arcs([]), inputs)
    models = [dg.Model(TAGGER, {"net": p}, objective=training.Conditional()) for p in (network, every)]
    ran.clear()
    for m in models:
        m.fit(tagged(), method="sgd", size=1, iterations=1)
    assert ran[::2] == [24] * 3 and all(n < 24 for n in ran[1::2]) and len(ran) == 6
    assert models[0].parameters["net"] == pytest.approx(models[1].parameters["net"], abs=1e-12)
    with pytest.raises(dg.Error, match="rowwise, unless it is \"gradient\", must be True or False, not 'all'"):
        training.Torch(ROWS, Arcs([]), inputs, rowwise="all")


def test_rowwise_has_its_old_name_too() -> None:
    with pytest.warns(DeprecationWarning, match=r"training.Torch\(..., apart=...\) is rowwise=... now") as found:
        assert of_rows(torch.nn.Identity(), apart=True).rowwise
    assert found[0].filename == __file__


def test_a_rowwise_module_needs_inputs_of_its_rows() -> None:
    with pytest.raises(dg.Error, match="each of the 24 rows; input 0 has not"):
        of_rows(torch.nn.Identity(), torch.zeros((3, 5)), rowwise=True)
    with pytest.raises(dg.Error, match="rowwise=True needs inputs"):
        training.Torch(ROWS, Scorer(), rowwise=True)


def linear(**options: Any) -> dg.Model:
    weights = training.LogLinear(ROWS, lambda a, b: [f"{a}-{b}", b], **options)
    return dg.Model(TAGGER, {"w": weights}, objective=training.Conditional(), prior=training.L2(0.1))


@pytest.mark.parametrize(
    ("ours", "options", "theirs"),
    [("sgd", {"momentum": 0.5}, "SGD"), ("adagrad", {}, "Adagrad"), ("adam", {"beta1": 0.8}, "Adam")],
)
def test_steps_of_torch_are_our_own(ours: str, options: dict[str, float], theirs: str) -> None:
    one, two = linear(), linear()
    one.fit(tagged(), method=ours, rate=0.1, size=2, seed=3, iterations=6, tolerance=0.0, **options)
    if "beta1" in options:
        options = {"betas": (options["beta1"], 0.999)}
    two.fit(
        tagged(), method=getattr(torch.optim, theirs), lr=0.1, size=2, seed=3, iterations=6, tolerance=0.0, **options
    )
    rounding = 1e-8 if ours == "adam" else 1e-12  # it divides by the root of what may be next to nothing
    assert two.parameters["w"] == pytest.approx(one.parameters["w"], abs=rounding)


OPTIMISERS = {
    **dict.fromkeys(("SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "NAdam", "Rprop", "ASGD", "Adamax", "RAdam"), 0.1),
    "LBFGS": 1.0,
    "Adadelta": 10.0,
    "Adafactor": 1.0,
}
"""Their rates."""
REFUSED = {"Muon": "cannot be made: Muon only supports 2D", "SparseAdam": "cannot step: .* not support dense gradients"}
"""What those say that are for other parameters than a vector."""


def test_every_class_of_torch_optim_is_a_method() -> None:
    best = linear().fit(tagged(), method="l-bfgs", tolerance=1e-15, iterations=300).objective
    problem = Problem(linear()._spec, DataPasses(tagged()), in_threads(1))
    start, count = problem.objective(linear().parameters)[0], 0
    for name, made in vars(torch.optim).items():
        if not isinstance(made, type) or made is torch.optim.Optimizer or not issubclass(made, torch.optim.Optimizer):
            continue
        m, count = linear(), count + 1
        if name in REFUSED:
            with pytest.raises(dg.Error, match=f"{name} {REFUSED[name]}"):
                m.fit(tagged(), method=made, iterations=1)
            continue
        m.fit(tagged(), method=made, lr=OPTIMISERS.get(name, 0.1), size=3, iterations=80, tolerance=0.0)
        reached = problem.objective(m.parameters)[0]
        assert (best - 0.5 if name in OPTIMISERS else start) < reached <= best + 1e-9, (name, reached, best)
    assert count >= 12


def test_decay_of_weights_leaves_frozen_parameters_alone() -> None:
    m = linear(initial=0.5, frozen=lambda feature: "-" in str(feature))
    m.fit(tagged(), method=torch.optim.AdamW, lr=0.1, weight_decay=0.5, size=3, iterations=3)
    frozen = ["-" in name for name in m._spec.parametrisations["w"].names()]
    assert any(frozen) and (m.parameters["w"] == 0.5).tolist() == frozen


def test_what_is_no_module() -> None:
    with pytest.raises(dg.Error, match=r"a torch\.nn\.Module is wanted"):
        training.Torch(ROWS, lambda x: x)
    with pytest.raises(dg.Error, match="no parameters"):
        training.Torch(ROWS, torch.nn.Tanh(), torch.zeros(24))
    wrong = training.Torch(ROWS, torch.nn.Linear(2, 1), torch.zeros((5, 2)))
    with pytest.raises(dg.Error, match="gives 5 numbers for 24 rows"):
        dg.Model(TAGGER, {"w": wrong}).score(tagged())
