package packed

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// Settled reports whether everything in an encoding is known and not null.
func Settled(encoded string) bool {
	settled := true
	err := gaps(encoded, func([]string, bool) { settled = false })
	return err == nil && settled
}

// gaps calls visit for each value in an encoding that is null or unknown, with the keys that lead to it.
func gaps(encoded string, visit func(keys []string, null bool)) error {
	return gapsFrom(msgpack.NewDecoder(strings.NewReader(encoded)), nil, visit)
}

func gapsFrom(d *msgpack.Decoder, keys []string, visit func(keys []string, null bool)) error {
	code, err := d.PeekCode()
	if err != nil {
		return err
	}
	if isGap(code) {
		visit(keys, code == msgpcode.Nil)
	}
	if !msgpcode.IsFixedMap(code) && code != msgpcode.Map16 && code != msgpcode.Map32 {
		return d.Skip()
	}
	n, err := d.DecodeMapLen()
	for range n {
		var key string
		if key, err = d.DecodeString(); err == nil {
			err = gapsFrom(d, append(keys, key), visit)
		}
		if err != nil {
			break
		}
	}
	return err
}

// isGap reports whether an encoding that starts with this byte is null or unknown; unknown is
// Terraform's only extension.
func isGap(code byte) bool { return code == msgpcode.Nil || msgpcode.IsExt(code) }

// Transform changes values within a packed attribute, as [tftypes.Transform] does.
func Transform(
	a Attribute, v tftypes.Value, change func(*tftypes.AttributePath, tftypes.Value) (tftypes.Value, error),
) (tftypes.Value, error) {
	unpacked, err := Unpack(a, v)
	if err == nil {
		unpacked, err = tftypes.Transform(unpacked, change)
	}
	if err != nil {
		return v, err
	}
	encoded, err := tfprotov6.NewDynamicValue(a.StandsFor(), unpacked)
	return tftypes.NewValue(tftypes.String, string(encoded.MsgPack)), err
}

// Unpack returns the value that a packed attribute stands for.
func Unpack(a Attribute, v tftypes.Value) (unpacked tftypes.Value, err error) {
	switch {
	case v.IsNull():
		return tftypes.NewValue(a.StandsFor(), nil), nil
	case !v.IsKnown():
		return tftypes.NewValue(a.StandsFor(), tftypes.UnknownValue), nil
	}
	var encoded string
	if err := v.As(&encoded); err != nil {
		return unpacked, err
	}
	return tfprotov6.DynamicValue{MsgPack: []byte(encoded)}.Unmarshal(a.StandsFor())
}
