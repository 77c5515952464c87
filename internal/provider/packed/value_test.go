package packed

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"pgregory.net/rapid"
)

func TestValueUnpacksWhatWasPacked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		packed := rapid.MapOf(rapid.String(), rapid.MapOf(rapid.String(), rapid.String())).Draw(t, "packed")
		got, settled := Of(packed).Unpack()
		if diff := cmp.Diff(packed, got); diff != "" || !settled {
			t.Fatalf("settled %t (-packed +unpacked)\n%s", settled, diff)
		}
	})
}

// A value with a null or unknown part is not settled, and has no meaning.
func TestUnpackOfWhatIsNotSettled(t *testing.T) {
	for name, of := range map[string]tftypes.Value{
		"null":    tftypes.NewValue(textsType, nil),
		"unknown": tftypes.NewValue(textsType, tftypes.UnknownValue),
		"null in it": tftypes.NewValue(textsType,
			map[string]tftypes.Value{"a": tftypes.NewValue(textsType.ElementType, nil)}),
		"unknown in it": tftypes.NewValue(textsType, map[string]tftypes.Value{
			"a": tftypes.NewValue(textsType.ElementType,
				map[string]tftypes.Value{"b": text("c"), "d": tftypes.NewValue(tftypes.String, tftypes.UnknownValue)}),
		}),
	} {
		v := Value[nested]{types.StringValue(string(encoded(t, of).MsgPack))}
		if got, settled := v.Unpack(); settled || v.Meaning() != nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
	for name, v := range map[string]Value[nested]{
		"zero": {}, "nil": Of[nested](nil), "unknown": {types.StringUnknown()},
		"nothing that Terraform encodes": {types.StringValue("\xc1")},
	} {
		if got, settled := v.Unpack(); settled || v.Meaning() != nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// An equal value keeps its encoding, even one that is not ours.
func TestSpelledKeepsTheEncoding(t *testing.T) {
	meaning := nested{"a": {"b": "c"}}
	theirs := Value[nested]{types.StringValue("\xde\x00\x01\xa1a\x81\xa1b\xa1c")} // a map with its length in two bytes
	if got := theirs.Spelled(meaning); got != any(theirs) {
		t.Errorf("got %v, want %v", got, theirs)
	}
	if got := theirs.Spelled(nested{"a": {}}); got != any(Of(nested{"a": {}})) {
		t.Errorf("got %v", got)
	}
}
