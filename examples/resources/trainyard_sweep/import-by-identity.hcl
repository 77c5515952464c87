import {
  to = trainyard_sweep.trials
  identity = {
    cluster = "lab"
    name    = "trials"
  }
}
