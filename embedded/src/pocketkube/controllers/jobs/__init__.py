"""Pods that end: Jobs and CronJobs."""
