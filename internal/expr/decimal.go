package expr

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"regexp"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"countersign/internal/canon"
)

// decimalMax bounds the text of a decimal, in characters.
const decimalMax = 64

var decimalPattern = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

var exactType = types.NewOpaqueType("decimal").WithTraits(traits.ComparerType)

// exact is a decimal fraction that compares exactly: money as text. It cannot
// be calculated with, and is no JSON value.
type exact struct {
	text string
	rat  *big.Rat
}

// toDecimal makes a decimal of text such as "12.50", or of a number by the
// digits it is written with (RFC 8785).
func toDecimal(v ref.Val) ref.Val {
	switch v := v.(type) {
	case exact:
		return v
	case types.String:
		return parseDecimal(string(v))
	case types.Int:
		return parseDecimal(strconv.FormatInt(int64(v), 10))
	case types.Double:
		if text := canon.Number(float64(v)); decimalPattern.MatchString(text) {
			return parseDecimal(text)
		}
		return types.NewErr("the number %v is no plain decimal", float64(v))
	}
	return types.NewErr("decimal() takes text or a number, not %s", typeName(v))
}

func parseDecimal(s string) ref.Val {
	if len(s) > decimalMax || !decimalPattern.MatchString(s) {
		return types.NewErr("%q is not a decimal such as 12.50 (at most %d characters)", clip(s), decimalMax)
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return types.NewErr("%q is not a decimal such as 12.50", clip(s))
	}
	return exact{s, r}
}

// rational is the exact value of a decimal or of a number's shortest text.
func rational(v ref.Val) (*big.Rat, bool) {
	switch v := v.(type) {
	case exact:
		return v.rat, true
	case types.Int:
		return new(big.Rat).SetInt64(int64(v)), true
	case types.Double:
		if math.IsInf(float64(v), 0) || math.IsNaN(float64(v)) {
			return nil, false
		}
		return new(big.Rat).SetString(canon.Number(float64(v)))
	}
	return nil, false
}

// Compare implements traits.Comparer.
func (e exact) Compare(other ref.Val) ref.Val {
	r, ok := rational(other)
	if !ok {
		return types.NewErr("a decimal and %s can't be compared; write decimal(…) around it", typeName(other))
	}
	return types.Int(e.rat.Cmp(r))
}

// Equal implements ref.Val.
func (e exact) Equal(other ref.Val) ref.Val {
	r, ok := rational(other)
	return types.Bool(ok && e.rat.Cmp(r) == 0)
}

// ConvertToNative implements ref.Val; a decimal has no Go or JSON form.
func (e exact) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("a decimal is no JSON value")
}

// ConvertToType implements ref.Val.
func (e exact) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return exactType
	}
	return types.NewErr("a decimal can't be made %s", t.TypeName())
}

// Type implements ref.Val.
func (e exact) Type() ref.Type { return exactType }

// Value implements ref.Val.
func (e exact) Value() any { return e.rat }
