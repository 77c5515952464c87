import {
  to = trainyard_group.training
  identity = {
    cluster = "lab"
    name    = "training"
  }
}
