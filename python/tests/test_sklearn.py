"""scikit-learn and `joblib.Parallel`, with a `Memory` of this package in place of joblib's."""

from __future__ import annotations

from pathlib import Path

import programs
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("joblib")

DATA = """
import numpy
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
memory = sde.Memory("s")
X = numpy.random.default_rng(1).normal(size=(60, 5))
y = (X[:, 0] > 0).astype(int)
def pipeline(**options):
    return Pipeline([("pca", PCA(**options)), ("model", LogisticRegression())], memory=memory)
def computed():
    return memory.stats()["computed"]
"""


def test_a_pipeline_fits_its_steps_once(tmp_path: Path) -> None:
    text = DATA + """
one = pipeline(n_components=3).fit(X, y)
print("computed", computed())
other = pipeline(n_components=3).fit(X, y)
print("computed", computed(), (one.predict(X) == other.predict(X)).all())
# A step as it is fitted belongs to its pipeline alone.
print(one.named_steps["pca"] is other.named_steps["pca"], one.named_steps["pca"].mean_.flags.writeable)
pipeline(n_components=2).fit(X, y)
print("computed", computed())
pipeline(n_components=3).fit(X + 1, y)
print("computed", computed())
pipeline(n_components=3, whiten=True).fit(X, y)
print("computed", computed())
"""
    expected = ["computed 1", "computed 1 True", "False True", "computed 2", "computed 3", "computed 4"]
    assert programs.run(tmp_path, text) == expected
    # In the next process all are remembered.
    assert programs.run(tmp_path, text) == [f"computed 0{line[10:]}" if "computed" in line else line for line in expected]


def test_a_class_of_the_user_s_counts_by_its_code(tmp_path: Path) -> None:
    text = DATA + """
from sklearn.base import BaseEstimator, TransformerMixin
class Scaled(TransformerMixin, BaseEstimator):
    def __init__(self, by=2):
        self.by = by
    def fit(self, X, y=None):
        return self
    def transform(self, X):
        return X * self.by
def fit(by):
    Pipeline([("scaled", Scaled(by)), ("model", LogisticRegression())], memory=memory).fit(X, y)
    return computed()
print(fit(2), fit(2), fit(3))
"""
    assert programs.run(tmp_path, text) == ["1 1 2"]
    assert programs.run(tmp_path, text) == ["0 0 0"]
    assert programs.run(tmp_path, text.replace("X * self.by", "X * self.by + 1")) == ["1 1 2"]


def test_a_grid_search_with_processes(tmp_path: Path) -> None:
    text = DATA + """
from sklearn.model_selection import GridSearchCV
search = GridSearchCV(pipeline(), {"pca__n_components": [2, 3], "model__C": [0.1, 1.0]}, cv=2, n_jobs=2)
search.fit(X, y)
print(sorted(search.best_params_), search.predict(X).shape)
"""
    assert programs.run(tmp_path, text) == ["['model__C', 'pca__n_components'] (60,)"]
    # The workers' fits are in the store: two grids of the first step, on two folds.
    again = text.replace("n_jobs=2", "n_jobs=1") + "print(computed())\n"
    assert programs.run(tmp_path, again) == ["['model__C', 'pca__n_components'] (60,)", "0"]


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_parallel_calls_of_a_cached_function(tmp_path: Path, backend: str) -> None:
    text = f"""
import joblib
memory = sde.Memory("s")
@memory.cache
def f(x):
    with open("runs", "a") as runs:
        runs.write(f"{{x}}\\n")
    return x + 1
def all():
    return joblib.Parallel(n_jobs=2, backend="{backend}")(joblib.delayed(f)(x) for x in range(6))
if __name__ == "__main__":
    print(all(), all())
    shelved = joblib.Parallel(n_jobs=2, backend="{backend}")(joblib.delayed(f.call_and_shelve)(x) for x in range(8))
    print([one.get() for one in shelved])
"""
    expected = ["[1, 2, 3, 4, 5, 6] [1, 2, 3, 4, 5, 6]", "[1, 2, 3, 4, 5, 6, 7, 8]"]
    assert programs.run(tmp_path, text) == expected
    # A worker looks for what others have saved once in a second at most, so some may be run twice.
    runs = (tmp_path / "runs").read_text()
    assert set(runs.split()) == set("01234567")
    assert programs.run(tmp_path, text) == expected
    assert (tmp_path / "runs").read_text() == runs
