"""Quotas, limits and webhooks."""
