package meter

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Prometheus returns a value with its time.
func TestPrometheusSource(t *testing.T) {
	at := noon.Add(-7 * time.Second)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		result := fmt.Sprintf(`[{"metric":{},"value":[%d,"12.5"]}]`, at.Unix())
		if r.FormValue("query") != "load" {
			result = "[]"
		}
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":%s}}`, result)
	}))
	defer server.Close()
	ask := func(query string) autoscale.Measurement {
		return read(t, patient(&fake{}), Observation{},
			Question{Source: domain.ScalingSource{Prometheus: &domain.PrometheusSource{URL: server.URL, Query: query}}})
	}
	if got := ask("load"); got.Value != 12.5 || got.Why != "" || !got.At.Equal(at) || got.Members != nil {
		t.Errorf("it is %+v", got)
	}
	missed(t, ask("absent"), "the query absent returns nothing")
}
