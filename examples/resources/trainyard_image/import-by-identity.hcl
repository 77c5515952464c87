import {
  to = trainyard_image.trainer
  identity = {
    cluster = "lab"
    name    = "trainer:1.2"
  }
}
