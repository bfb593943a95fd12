"""The rules of workloads: Deployments and their like, Jobs and CronJobs."""
