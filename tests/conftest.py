"""The hooks and fixtures of hooks.py, once in a session, whichever tests it runs."""

import hooks


def pytest_configure(config):
    if not config.pluginmanager.is_registered(hooks):
        config.pluginmanager.register(hooks)
