# The state's address and credentials come from the environment: TF_HTTP_ADDRESS, TF_HTTP_PASSWORD, ….
# GitLab itself stores state at such addresses. Alternatives: s3 with use_lockfile, gcs, azurerm.
terraform {
  backend "http" {}
}
