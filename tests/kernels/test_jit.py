import numba
import pytest

from forestprune.kernels import jit


@pytest.mark.parametrize("can_cache", [True, False])
def test_kernels_compile_whether_or_not_they_can_be_kept(monkeypatch, can_cache):
    asked = []

    def njit(*, nogil, cache=False):
        asked.append(cache)
        if cache and not can_cache:
            raise RuntimeError("cannot cache function: no locator available")
        return numba.njit(nogil=nogil)

    monkeypatch.setattr(jit, "njit", njit)
    assert jit.kernel(lambda x: x + 1)(1) == 2
    assert asked == ([True] if can_cache else [True, False])
