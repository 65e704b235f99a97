"""What every exported model must stand, whatever library it is of."""

import subprocess
import sys
import textwrap

import joblib


def predicts_alone(native, X, folder):
    """Assert that a model loads and predicts the same where this package is not installed."""
    joblib.dump((native, X, native.predict(X)), folder / "model.joblib")
    script = """
        import joblib, sys
        sys.modules["forestprune"] = None
        model, X, expected = joblib.load("model.joblib")
        assert (model.predict(X) == expected).all()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], cwd=folder, check=True)
