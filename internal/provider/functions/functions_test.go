package functions

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// call runs a function and returns its result or its error.
func call(
	t *testing.T, f function.Function, unknown attr.Value, arguments ...attr.Value,
) (attr.Value, *function.FuncError) {
	t.Helper()
	resp := function.RunResponse{Result: function.NewResultData(unknown)}
	f.Run(t.Context(), function.RunRequest{Arguments: function.NewArgumentsData(arguments)}, &resp)
	return resp.Result.Value(), resp.Error
}

// wantError fails unless an error is about this argument and contains this text.
func wantError(t *testing.T, err *function.FuncError, argument int64, part string) {
	t.Helper()
	if err == nil || err.FunctionArgument == nil || *err.FunctionArgument != argument ||
		!strings.Contains(err.Text, part) {
		t.Errorf("got error %v, want one about argument %d that says %q", err, argument, part)
	}
}

func TestTFConfig(t *testing.T) {
	addresses := func(list ...string) attr.Value {
		var elements []attr.Value
		for _, a := range list {
			elements = append(elements, types.StringValue(a))
		}
		return types.ListValueMust(types.StringType, elements)
	}
	cluster := types.MapValueMust(types.ListType{ElemType: types.StringType}, map[string]attr.Value{
		"ps":     addresses("a:1"),
		"worker": addresses("b:1", "c:1"),
	})
	for name, test := range map[string]struct {
		task     string
		index    int64
		want     string
		argument int64
		failure  string
	}{
		"the first": {
			task: "ps", index: 0,
			want: `{"cluster":{"ps":["a:1"],"worker":["b:1","c:1"]},"task":{"type":"ps","index":0}}`,
		},
		"the last": {
			task: "worker", index: 1,
			want: `{"cluster":{"ps":["a:1"],"worker":["b:1","c:1"]},"task":{"type":"worker","index":1}}`,
		},
		"unknown type":       {task: "chief", argument: 1, failure: `"chief"; it has ["ps" "worker"]`},
		"index beyond":       {task: "worker", index: 2, argument: 2, failure: "the cluster has 2 of them"},
		"index before first": {task: "worker", index: -1, argument: 2, failure: "indexes start at 0"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := call(t, NewTFConfig(), types.StringUnknown(), cluster, types.StringValue(test.task),
				types.Int64Value(test.index))
			if test.failure != "" {
				wantError(t, err, test.argument, test.failure)
				return
			}
			if err != nil || !got.Equal(types.StringValue(test.want)) {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

func TestPSBandwidthBeyondNumbers(t *testing.T) {
	huge := types.Float64Value(1e308)
	_, err := call(t, NewPSBandwidth(), types.Float64Unknown(), huge, huge, types.Float64Value(1), huge, huge)
	if err == nil || !strings.Contains(err.Text, "too large") {
		t.Errorf("got error %v, want one that the arguments are too large", err)
	}
}

func TestPSBandwidth(t *testing.T) {
	for name, test := range map[string]struct {
		arguments [5]float64
		want      float64
		failure   string
	}{
		"as published":      {arguments: [5]float64{250e6, 4, 10, 1, 1}, want: 80},
		"two servers":       {arguments: [5]float64{250e6, 4, 10, 2, 1}, want: 40},
		"slower steps":      {arguments: [5]float64{250e6, 4, 10, 1, 4}, want: 20},
		"half precision":    {arguments: [5]float64{250e6, 2, 10, 1, 1}, want: 40},
		"no parameters":     {arguments: [5]float64{0, 4, 10, 1, 1}, failure: "parameters is 0"},
		"negative bytes":    {arguments: [5]float64{1, -4, 10, 1, 1}, failure: "bytes is -4"},
		"no workers":        {arguments: [5]float64{1, 4, 0, 1, 1}, failure: "workers is 0"},
		"no servers":        {arguments: [5]float64{1, 4, 10, 0, 1}, failure: "ps is 0"},
		"steps of no time":  {arguments: [5]float64{1, 4, 10, 1, 0}, failure: "step_seconds is 0"},
		"fractions are all": {arguments: [5]float64{1e9, 0.5, 1, 1, 0.5}, want: 8},
	} {
		t.Run(name, func(t *testing.T) {
			var arguments []attr.Value
			var wrong int64
			for i, a := range test.arguments {
				arguments = append(arguments, types.Float64Value(a))
				if a <= 0 {
					wrong = int64(i)
				}
			}
			got, err := call(t, NewPSBandwidth(), types.Float64Unknown(), arguments...)
			if test.failure != "" {
				wantError(t, err, wrong, test.failure)
				return
			}
			if err != nil || !got.Equal(types.Float64Value(test.want)) {
				t.Errorf("got %s, %v, want %v", got, err, test.want)
			}
		})
	}
}
