package functions

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/topology"
)

// tfConfig is tf_config.
type tfConfig struct{}

func (tfConfig) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "tf_config"
}

func (tfConfig) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Render TensorFlow's TF_CONFIG for one task",
		MarkdownDescription: "Renders the value of `TF_CONFIG` for one task of a cluster that Trainyard does not " +
			"run, as compact JSON. " +
			"Members of groups with the framework `tensorflow` get theirs in the environment.",
		Parameters: []function.Parameter{
			function.MapParameter{
				Name: "cluster",
				MarkdownDescription: "Addresses (`host:port`) of the tasks by type, such as `chief`, `worker` and " +
					"`ps`, in index order. An `evaluator` is not part of the cluster and is omitted from the result.",
				ElementType: types.ListType{ElemType: types.StringType},
			},
			function.StringParameter{
				Name:                "type",
				MarkdownDescription: "Type of the task: a key of `cluster`.",
			},
			function.Int64Parameter{
				Name:                "index",
				MarkdownDescription: "Index of the task within its type, from 0.",
			},
		},
		Return: function.StringReturn{},
	}
}

func (tfConfig) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var cluster map[string][]string
	var task string
	var index int64
	if resp.Error = req.Arguments.Get(ctx, &cluster, &task, &index); resp.Error != nil {
		return
	}
	addresses, found := cluster[task]
	switch {
	case !found:
		resp.Error = function.NewArgumentFuncError(1,
			fmt.Sprintf("the cluster has no task type %q; it has %q", task, slices.Sorted(maps.Keys(cluster))))
	case index < 0 || index >= int64(len(addresses)):
		resp.Error = function.NewArgumentFuncError(2, fmt.Sprintf(
			"there is no task %d of type %q; the cluster has %d of them, and indexes start at 0", index, task,
			len(addresses),
		))
	default:
		resp.Error = resp.Result.Set(ctx, topology.TFConfig(cluster, task, int(index)))
	}
}

// NewTFConfig returns tf_config.
func NewTFConfig() function.Function { return tfConfig{} }
