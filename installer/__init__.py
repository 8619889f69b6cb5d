"""The installer: from a fresh checkout and a Python to a running program, or to a finished test run.

    python3 -m installer run         sets up what is missing, starts Octavo, opens the browser
    python3 -m installer test        the same, then runs the tests
    python3 -m installer install     puts Octavo under the person's folder, into the menu and in PATH
    python3 -m installer uninstall   removes that
Standard library only. It lives in the repository and is not packaged; it knows nothing of app, engine
or kernels.
"""
