# A group is imported by the names of its cluster and its own.
terraform import trainyard_group.training lab/training
