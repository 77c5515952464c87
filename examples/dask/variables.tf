variable "engine" {
  description = "Engine of the cluster: `process` (this machine, which then needs Dask) or `swarm`."
  type        = string
  default     = "process"
}

variable "hosts" {
  description = "For swarm: hosts by host name, such as { gpu1 = { address = \"ssh://ops@gpu1\", role = \"manager\" } }. They form a Swarm, or are already one."
  type        = map(object({ address = string, role = optional(string) }))
  default     = null
}

variable "archive" {
  description = "For swarm: archive of an image with Dask (docker save), for hosts that cannot reach a registry. If omitted, one of the hosts builds the Dockerfile."
  type        = string
  default     = null
}

variable "dask" {
  description = "Path of the program dask (pip install distributed)."
  type        = string
  default     = "dask"
}

variable "python" {
  description = "Python interpreter with Dask and scikit-learn (pip install distributed scikit-learn)."
  type        = string
  default     = "python3"
}

variable "port" {
  description = "Port of the scheduler."
  type        = number
  default     = 8786
}

variable "workers" {
  description = "Number of workers. A change restarts no other member."
  type        = number
  default     = 2
}

variable "rounds" {
  description = "Number of rounds. In each, the workers train on all images, and their weights are averaged."
  type        = number
  default     = 20
}
