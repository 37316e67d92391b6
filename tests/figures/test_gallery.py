"""Can the committed gallery be drawn anew, and does its page show all of it?"""

from __future__ import annotations

import importlib.util
from pathlib import Path

GALLERY = Path(__file__).resolve().parents[2] / "docs" / "gallery"


def test_the_gallery_is_what_its_program_draws(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("gallery_make", GALLERY / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    drawn = {path.name for path in module.main(tmp_path)}
    committed = {path.name for path in GALLERY.iterdir() if path.suffix in (".png", ".svg")}
    assert drawn == committed
    page = (GALLERY / "README.md").read_text(encoding="utf-8")
    assert [name for name in sorted(drawn) if name.endswith(".png") and f"]({name})" not in page] == []
    assert sum(path.stat().st_size for path in GALLERY.iterdir() if path.is_file()) < 4e6
