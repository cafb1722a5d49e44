package expr

import (
	"errors"
	"fmt"
	"math"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"countersign/internal/canon"
)

// native copies a CEL value into plain JSON: nil, bool, float64, string, []any,
// map[string]any. left is what ResultMax still allows.
func native(v ref.Val, depth int, left *int) (any, error) {
	if depth > DepthMax {
		return nil, fmt.Errorf("the result nests deeper than %d levels", DepthMax)
	}
	if s, ok := v.(types.String); ok {
		*left -= len(s)
	}
	if *left -= 8; *left < 0 {
		return nil, fmt.Errorf("the result is larger than %d bytes", ResultMax)
	}
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.String:
		return string(v), nil
	case types.Int:
		if f := float64(v); math.Abs(f) < 1<<53 || canon.Number(f) == fmt.Sprint(int64(v)) {
			return f, nil
		}
		return nil, fmt.Errorf("the whole number %d is outside the range in which numbers are exact; use string()", v)
	case types.Double:
		return finite(float64(v))
	case traits.Lister:
		return list(v, depth, left)
	case traits.Mapper:
		return object(v, depth, left)
	case exact:
		return nil, errors.New("a decimal is only for comparing; use string() for its text")
	case *types.Err:
		return nil, v
	}
	return nil, fmt.Errorf("the result is of type %s, which JSON does not have", v.Type().TypeName())
}

func finite(f float64) (any, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, errors.New("the result is not a finite number")
	}
	if f == 0 {
		return 0.0, nil // never -0
	}
	return f, nil
}

func list(v traits.Lister, depth int, left *int) (any, error) {
	n, ok := v.Size().(types.Int)
	if !ok {
		return nil, errors.New("the list has no size")
	}
	out := make([]any, 0, min(int(n), 1024))
	for i := types.Int(0); i < n; i++ {
		x, err := native(v.Get(i), depth+1, left)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

func object(v traits.Mapper, depth int, left *int) (any, error) {
	out := map[string]any{}
	for it := v.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("an object has the key %v, which is not text", key.Value())
		}
		*left -= len(name)
		x, err := native(v.Get(key), depth+1, left)
		if err != nil {
			return nil, err
		}
		out[string(name)] = x
	}
	return out, nil
}

// Format writes a JSON value as joined text does: text as it is, numbers in the
// RFC 8785 form, true and false, lists and objects as canonical JSON. null is an
// error: nothing was there to say.
func Format(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", errors.New("it is null, and text can't hold that; choose a text with ? : when it may be")
	case string:
		return v, nil
	case bool:
		return fmt.Sprint(v), nil
	}
	b, err := canon.Marshal(v)
	if err != nil {
		return "", err
	}
	return string(b), nil
}
