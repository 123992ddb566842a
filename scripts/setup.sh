# The other scripts read this file, in the root of the project. It makes .venv with all packages that they need, once,
# and again when pyproject.toml has changed.

PY=.venv/bin/python
RECENT='import sys; sys.exit(sys.version_info < (3, 11))'
JAVA='import os; from wincli.windowing.spark.java import find_java; find_java(os.environ)'

say() {
    printf '%s\n' "$*" >&2
}

recent_python() {
    for name in python3 python3.11 python3.12 python3.13 python3.14; do
        if command -v "$name" >/dev/null 2>&1 && "$name" -c "$RECENT" 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    say "wincli needs Python 3.11 or newer and there is none on PATH; install one, for example from https://python.org"
    return 1
}

make_venv() {
    if [ -d .venv ] && "$PY" -c "$RECENT" 2>/dev/null; then
        return
    fi
    if [ -e .venv ]; then
        say "the .venv here does not run Python 3.11 or newer; remove it and try again"
        return 1
    fi
    python=$(recent_python)
    say "making .venv with $python (once)"
    if ! "$python" -m venv .venv; then
        rm -rf .venv
        say "$python cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv"
        return 1
    fi
}

install_extras() {
    say "installing wincli and [$1] into .venv (once)"
    "$PY" -m pip install -qq --disable-pip-version-check --no-compile -e ".[$1]"
    # pip compiles 9,000 modules one at a time, which takes as long as all else of its work. Some are no Python 3.
    "$PY" -W ignore -m compileall -qq -j 0 "$("$PY" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" || true
}

setup() {
    make_venv
    # The root of the project is the folder of the package; by this link type checkers and editors find it as wincli.
    mkdir -p .venv/src
    ln -sfn ../.. .venv/src/wincli
    sum=$(cksum <pyproject.toml)
    stamp=.venv/wincli-installed
    if [ "$(cat "$stamp" 2>/dev/null)" != "$sum" ]; then
        install_extras test
        printf '%s\n' "$sum" >"$stamp"
    fi
    # This is the rule by which wincli itself finds Java: JAVA_HOME, PATH, then the runtime of the extra.
    if ! "$PY" -c "$JAVA" 2>/dev/null; then
        install_extras test,java
        "$PY" -c "$JAVA"
    fi
}

# Sail takes the functions of a client that it knows, so its tests run in an environment of their own: that client and
# Sail, and for all else the packages of .venv. Its tests are those that need no Java: pytest --spark sail.
SAIL=.venv-sail/bin/python

setup_sail() {
    sum=$(cksum <scripts/setup.sh)
    [ "$(cat .venv-sail/installed 2>/dev/null)" != "$sum" ] || return 0
    say "installing Sail into .venv-sail (once)"
    rm -rf .venv-sail
    "$PY" -m venv --without-pip .venv-sail
    own=$("$SAIL" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    "$PY" -m pip install -qq --disable-pip-version-check --no-deps --target "$own" 'pyspark-client==4.2.*' 'pysail==0.7.*'
    base=$("$PY" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    printf 'import site; site.addsitedir("%s")\n' "$base" >"$own/packages-of-venv.pth"
    printf '%s\n' "$sum" >.venv-sail/installed
}
