import {
  to = trainyard_files.code
  identity = {
    cluster = "lab"
    name    = "code"
  }
}
