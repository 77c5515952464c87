# The state's address and credentials come from the environment: TF_HTTP_ADDRESS, TF_HTTP_PASSWORD, ….
# Each folder needs its own address: an apply destroys what another configuration has in the same state.
# GitLab itself stores state at such addresses. Alternatives: s3 with use_lockfile, gcs, azurerm.
terraform {
  backend "http" {}
}
