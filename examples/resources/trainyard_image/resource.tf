terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = "swarm"

  hosts = {
    gpu1 = { address = "ssh://ops@gpu1", role = "manager" }
    gpu2 = { address = "ssh://ops@gpu2" }
  }
}

variable "archive" {
  description = "Archive of the trainer's image: docker save --output trainer.tar trainer:1.2. If omitted, each host pulls the image."
  type        = string
  default     = null
}

# Loaded onto every host, without a registry.
resource "trainyard_image" "trainer" {
  cluster = trainyard_cluster.lab
  name    = "trainer:1.2"
  archive = var.archive
}

# Built on one host, and copied to the others. It is rebuilt when a file in the folder changes.
resource "trainyard_image" "evaluator" {
  cluster = trainyard_cluster.lab
  name    = "evaluator:1"

  build = {
    context = "${path.module}/evaluator"
    args    = { PYTHON = "3.12" }
  }
}

# The group starts when all hosts have its images, without a registry.
resource "trainyard_group" "training" {
  cluster   = trainyard_cluster.lab
  name      = "training"
  framework = "tensorflow"
  image     = trainyard_image.trainer.image_id

  roles = {
    worker    = { replicas = 2, port = 9000 }
    evaluator = { image = trainyard_image.evaluator.image_id }
  }
}
