package domain

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestSecretValuesDoNotPrint(t *testing.T) {
	values := SecretValues{"worker": {"token": []byte("hunter2")}}
	encoded, err := json.Marshal(struct{ Values SecretValues }{values})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		fmt.Sprintf("%v %+v %#v %s %x", values, values, values, values, values),
		fmt.Sprint(struct{ V SecretValues }{values}), string(encoded),
	} {
		if !strings.Contains(text, "(secret values)") || strings.Contains(text, "worker") ||
			strings.Contains(text, "104 117") {
			t.Errorf("got %s", text)
		}
	}
}
