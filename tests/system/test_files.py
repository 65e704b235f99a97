import os

import pytest

from forestprune.system.files import write_atomically


def test_the_file_appears_whole(tmp_path):
    path = tmp_path / "file"
    with write_atomically(path) as file:
        file.write(b"half")
        assert not path.exists()
        file.write(b" and half")
    assert path.read_bytes() == b"half and half"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail():
        with write_atomically(path) as file:
            file.write(b"new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    link.symlink_to(real)
    with write_atomically(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"


def test_a_missing_folder_is_named(tmp_path):
    path = tmp_path / "nowhere" / "file"
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere"), write_atomically(path):
        pass


@pytest.mark.skipif(os.name != "posix", reason="permissions are a matter of POSIX systems")
def test_permissions_are_those_of_any_other_file(tmp_path):
    path, other = tmp_path / "file", tmp_path / "other"
    other.touch()
    with write_atomically(path) as file:
        file.write(b"1")
    assert path.stat().st_mode == other.stat().st_mode
    path.chmod(0o600)
    with write_atomically(path) as file:
        file.write(b"2")
    assert path.stat().st_mode & 0o777 == 0o600
