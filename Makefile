# make test    the whole test suite; as root on Linux also on a lab of real machines (tests/lab)
# make lint    style, types and shell scripts
# make docs    the documentation, into site/
# make demo    a real cluster on this one machine: up, a question, down
# make clean   remove what these made

# Without compiled files clusterctl takes twice as long to start.
unexport PYTHONDONTWRITEBYTECODE

PYTHON = python3
RUN = .venv/bin
INSTALL = $(RUN)/python -m pip install --quiet --quiet --disable-pip-version-check --editable

setup: .venv/development

.venv/product: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'clusterctl needs Python 3.11 or newer; name one: make PYTHON=python3.12 test' >&2; exit 1; }
	@echo 'installing clusterctl into .venv'
	@$(PYTHON) -m venv .venv
	@$(INSTALL) .
	@touch $@

.venv/development: .venv/product
	@echo 'installing what tests and linters need into .venv'
	@$(INSTALL) '.[dev]'
	@touch $@

test: setup
	@tools/install-packages.sh openssh-server iproute2 libgomp1 cmake g++ zsh fish
	@$(RUN)/pytest -n auto --dist loadgroup

lint: setup
	@$(RUN)/ruff check .
	@$(RUN)/ruff format --check .
	@$(RUN)/mypy
	@find . -name .venv -prune -o -type f -name '*.sh' -print | xargs shellcheck .ci/run

docs: setup
	@NO_MKDOCS_2_WARNING=1 $(RUN)/mkdocs build --strict --quiet

demo:
	@tools/demo.sh

clean:
	rm -rf .venv build dist site .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: setup test lint docs demo clean
