"""Why a gang waits, in words. Planning never imports this."""
