# Import an image: <cluster>/<name>. Its source stays unknown until the next apply compares it.
terraform import trainyard_image.trainer lab/trainer:1.2
