#!/usr/bin/env bash
# Runs a command with the environment that acceptance tests need: acceptance.sh go test ./...
# TF selects Terraform or OpenTofu as in terraform.sh.
set -euo pipefail

tf=$("$(dirname "$0")/terraform.sh")

# The user's own CLI configuration (mirrors, overrides, a path to a missing file) must not affect tests.
export TF_CLI_CONFIG_FILE=/dev/null CHECKPOINT_DISABLE=1

# Terraform starts a provider three times a command, each time with new keys for TLS between the two: a third of what a
# plan costs. Terraform has this variable for tests. The quickstart uses TLS in its test on bare hosts.
export TF_DISABLE_PLUGIN_TLS=1
version=$("$tf" version)
version=${version%%$'\n'*}

export TF_ACC=1 TF_ACC_TERRAFORM_PATH=$tf
if [[ $version == OpenTofu* ]]; then
  export TF_ACC_PROVIDER_HOST=registry.opentofu.org TF_ACC_PROVIDER_NAMESPACE=hashicorp
fi

printf 'Acceptance tests run on %s (%s).\n' "$version" "$tf" >&2
exec "$@"
