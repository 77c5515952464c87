//go:build linux

package daemons

import (
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/store"
)

func TestMain(m *testing.M) { acctest.Main(m, testbed.CloseShared) }

func keep(in dockerapi.Swarm) engine.Store { return store.NewItems(in) }
