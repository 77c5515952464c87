import {
  to = trainyard_gpu_pool.left
  identity = {
    cluster = "lab"
    name    = "left"
  }
}
