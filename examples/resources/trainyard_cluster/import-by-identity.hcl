import {
  to = trainyard_cluster.lab
  identity = {
    name = "lab"
  }
}
