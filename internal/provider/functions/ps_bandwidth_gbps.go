package functions

import (
	"context"
	"fmt"
	"math"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// psBandwidth is ps_bandwidth_gbps.
type psBandwidth struct{}

func (psBandwidth) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "ps_bandwidth_gbps"
}

// psBandwidthParameters are the function's parameters, in order.
var psBandwidthParameters = []struct{ name, description string }{
	{"parameters", "Number of model parameters."},
	{"bytes", "Size of a parameter in bytes, such as 4 for 32-bit floating point."},
	{"workers", "Number of workers."},
	{"ps", "Number of parameter servers. The parameters are spread evenly over them."},
	{"step_seconds", "Time that a worker takes per step, in seconds."},
}

func (psBandwidth) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Compute the network bandwidth that each parameter server needs",
		MarkdownDescription: "Computes the traffic at each parameter server, in Gbit/s and in one direction, when " +
			"every worker pulls all parameters and pushes all gradients in each step: " +
			"`parameters × bytes × 8 × workers ÷ (ps × step_seconds) ÷ 10⁹`. The same amount flows in the other " +
			"direction at the same time. " +
			"For 250 million parameters of 4 bytes, 10 workers, 1 parameter server and steps of 1 s, this is 80 " +
			"Gbit/s. All arguments must be above 0.",
		Return: function.Float64Return{},
	}
	for _, p := range psBandwidthParameters {
		resp.Definition.Parameters = append(resp.Definition.Parameters,
			function.Float64Parameter{Name: p.name, MarkdownDescription: p.description})
	}
}

func (psBandwidth) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var given [5]types.Float64
	if resp.Error = req.Arguments.Get(ctx, &given[0], &given[1], &given[2], &given[3], &given[4]); resp.Error != nil {
		return
	}
	var arguments [len(given)]float64
	for i := range given {
		if arguments[i] = given[i].ValueFloat64(); !(arguments[i] > 0) {
			resp.Error = function.NewArgumentFuncError(int64(i),
				fmt.Sprintf("%s is %v; it must be above 0", psBandwidthParameters[i].name, arguments[i]))
			return
		}
	}
	parameters, bytes, workers, ps, stepSeconds := arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]
	const gigabit = 1e9
	traffic := parameters * bytes * 8 * workers / (ps * stepSeconds) / gigabit
	if math.IsNaN(traffic) || math.IsInf(traffic, 0) {
		resp.Error = function.NewFuncError("the result is out of range; the arguments are too large")
		return
	}
	resp.Error = resp.Result.Set(ctx, traffic)
}

// NewPSBandwidth returns ps_bandwidth_gbps.
func NewPSBandwidth() function.Function { return psBandwidth{} }
