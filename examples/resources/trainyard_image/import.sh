# Import an image by the name of its cluster and its own. Its source is not known until the next apply compares.
terraform import trainyard_image.trainer lab/trainer:1.2
