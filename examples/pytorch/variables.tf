variable "engine" {
  description = "Engine of the cluster: `process` (this machine, which then needs PyTorch) or `swarm`."
  type        = string
  default     = "process"
}

variable "hosts" {
  description = "For swarm: hosts by host name, such as { gpu1 = { address = \"ssh://ops@gpu1\", role = \"manager\" } }. They form a Swarm, or are already one."
  type        = map(object({ address = string, role = optional(string) }))
  default     = null
}

variable "archive" {
  description = "For swarm: archive of an image with PyTorch (docker save), for hosts that cannot reach a registry. If omitted, one of the hosts builds the Dockerfile."
  type        = string
  default     = null
}

variable "python" {
  description = "Python interpreter with PyTorch and scikit-learn (apt-get install python3-torch python3-sklearn)."
  type        = string
  default     = "python3"
}

variable "epochs" {
  description = "Number of epochs."
  type        = number
  default     = 20
}

variable "ranks" {
  description = "Number of ranks."
  type        = number
  default     = 3
}

variable "gpus" {
  description = "GPUs by host, such as { local = [\"GPU-4f…\", \"GPU-5a…\"] }: each rank gets one of them. If omitted, ranks compute on CPUs."
  type        = map(list(string))
  default     = null
}
