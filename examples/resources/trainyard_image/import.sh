# An image is imported by the name of its cluster and its own. What it was made from is not known: the next apply compares.
terraform import trainyard_image.trainer lab/trainer:1.2
