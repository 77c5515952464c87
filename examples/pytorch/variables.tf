variable "engine" {
  description = "What runs the ranks: `process`, this machine, which then needs PyTorch itself, or `swarm`."
  type        = string
  default     = "process"
}

variable "hosts" {
  description = "For swarm: the hosts by their host names, such as { gpu1 = { address = \"ssh://ops@gpu1\", role = \"manager\" } }. They form a Swarm, or are one already."
  type        = map(object({ address = string, role = optional(string) }))
  default     = null
}

variable "archive" {
  description = "For swarm: archive of an image with PyTorch (docker save), for hosts that cannot reach a registry. Without one, the Dockerfile is built on one of the hosts."
  type        = string
  default     = null
}

variable "python" {
  description = "Python that has PyTorch and scikit-learn (apt-get install python3-torch python3-sklearn)."
  type        = string
  default     = "python3"
}

variable "epochs" {
  description = "Number of times that all images are learnt from."
  type        = number
  default     = 20
}

variable "ranks" {
  description = "Number of ranks."
  type        = number
  default     = 3
}

variable "gpus" {
  description = "GPUs by host, such as { local = [\"GPU-4f…\", \"GPU-5a…\"] }: each rank gets one of them. Without, ranks compute on processors."
  type        = map(list(string))
  default     = null
}
