//go:build linux

package acceptance

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
)

// Prometheus is a Prometheus that a test queries.
type Prometheus struct {
	testing.TB
	*http.Client

	URL string
}

// get decodes an endpoint's answer. It fails if Prometheus refuses, or does not answer yet.
func (p Prometheus) get(endpoint string, parameters url.Values, data any) error {
	p.Helper()
	response, err := p.Get(p.URL + "/api/v1/" + endpoint + "?" + parameters.Encode())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Status != "success" {
		return fmt.Errorf("%s: %s %.500s", response.Status, answer.Error, text)
	}
	return nil
}

// Query returns the labels of the series that an expression selects.
func (p Prometheus) Query(expression string) ([]map[string]string, error) {
	p.Helper()
	var found struct {
		Result []struct{ Metric map[string]string }
	}
	err := p.get("query", url.Values{"query": {expression}}, &found)
	labels := make([]map[string]string, len(found.Result))
	for i, result := range found.Result {
		labels[i] = result.Metric
	}
	return labels, err
}

// Targets returns the health of all targets by URL: "up", or what is wrong. It is nil while Prometheus does not answer.
func (p Prometheus) Targets() map[string]string {
	p.Helper()
	var found struct {
		ActiveTargets []struct {
			ScrapeURL, Health, LastError string
		}
	}
	if p.get("targets", url.Values{"state": {"active"}}, &found) != nil {
		return nil
	}
	health := map[string]string{}
	for _, target := range found.ActiveTargets {
		health[target.ScrapeURL] = target.Health + target.LastError
	}
	return health
}

// Alerts returns the health of the alerting rules by name: "ok" once they have been evaluated.
func (p Prometheus) Alerts() (map[string]string, error) {
	p.Helper()
	var found struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	err := p.get("rules", url.Values{"type": {"alert"}}, &found)
	health := map[string]string{}
	for _, group := range found.Groups {
		for _, rule := range group.Rules {
			health[rule.Name] = rule.Health + rule.LastError
		}
	}
	return health, err
}
