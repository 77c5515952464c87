resource "trainyard_files" "program" {
  cluster = var.cluster
  name    = var.name
  source  = "${path.module}/program"

  # Members refer to the path: create the new version before removing the old one.
  lifecycle {
    create_before_destroy = true
  }
}

resource "trainyard_group" "training" {
  cluster = var.cluster
  name    = var.name
  command = [var.python, "${trainyard_files.program.path}/train.py"]

  env = merge(
    {
      EPOCHS        = tostring(var.epochs)
      LEARNING_RATE = tostring(var.learning_rate)
      HIDDEN_UNITS  = tostring(var.hidden_units)
    },
    var.output_dir == null ? {} : { OUTPUT_DIR = var.output_dir },
  )

  roles = {
    worker = {
      replicas  = 1
      gpus      = var.gpus
      resources = var.resources
      restart   = { condition = "on_failure", max_attempts = 3 }
    }
  }

  completion = { when = "all" }
  triggers   = var.triggers
  wait_for   = "completed"
}
