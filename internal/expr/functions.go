package expr

import (
	"math"
	"strconv"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"countersign/internal/canon"
)

// functions are our own: arithmetic in which a JSON number and a whole number
// mix, string() in the RFC 8785 form, and decimal().
func functions() []cel.EnvOption {
	number := func(id string) []cel.FunctionOpt {
		i, d := cel.IntType, cel.DoubleType
		return []cel.FunctionOpt{
			cel.Overload(id+"_int64", []*cel.Type{i, i}, i), cel.Overload(id+"_double", []*cel.Type{d, d}, d),
			cel.Overload(id+"_int64_double", []*cel.Type{i, d}, d), cel.Overload(id+"_double_int64", []*cel.Type{d, i}, d),
		}
	}
	item := cel.TypeParamType("A")
	list := cel.ListType(item)
	add := append(number("add"),
		cel.Overload(overloads.AddString, []*cel.Type{cel.StringType, cel.StringType}, cel.StringType),
		cel.Overload(overloads.AddList, []*cel.Type{list, list}, list),
		cel.SingletonBinaryBinding(plus))
	return []cel.EnvOption{
		cel.Function(operators.Add, add...),
		cel.Function(operators.Subtract, append(number("subtract"), cel.SingletonBinaryBinding(arithmetic("-")))...),
		cel.Function(operators.Multiply, append(number("multiply"), cel.SingletonBinaryBinding(arithmetic("*")))...),
		cel.Function(operators.Divide, append(number("divide"), cel.SingletonBinaryBinding(arithmetic("/")))...),
		cel.Function(operators.Modulo, append(number("modulo"), cel.SingletonBinaryBinding(arithmetic("%")))...),
		cel.Function(overloads.TypeConvertString, cel.Overload("to_string", []*cel.Type{cel.DynType}, cel.StringType, cel.UnaryBinding(toString))),
		cel.Function("decimal", cel.Overload("to_decimal", []*cel.Type{cel.DynType}, cel.DynType, cel.UnaryBinding(toDecimal))),
	}
}

func plus(l, r ref.Val) ref.Val {
	_, leftText := l.(types.String)
	_, rightText := r.(types.String)
	_, leftList := l.(traits.Lister)
	_, rightList := r.(traits.Lister)
	switch {
	case leftText && rightText, leftList && rightList:
		return l.(traits.Adder).Add(r)
	case leftText || rightText:
		return types.NewErr("text and %s can't be added; write string(…) around the other value", kindOf(l, r))
	}
	return arithmetic("+")(l, r)
}

// kindOf names the one of the two that is not text.
func kindOf(l, r ref.Val) string {
	if _, ok := l.(types.String); ok {
		l = r
	}
	return typeName(l)
}

func typeName(v ref.Val) string {
	switch v.(type) {
	case types.Int, types.Double:
		return "a number"
	case types.String:
		return "text"
	case types.Bool:
		return "true or false"
	case types.Null:
		return "null"
	case exact:
		return "a decimal"
	case traits.Lister:
		return "a list"
	case traits.Mapper:
		return "an object"
	}
	return v.Type().TypeName()
}

// arithmetic works on two ints as CEL does, and on doubles otherwise.
func arithmetic(op string) func(l, r ref.Val) ref.Val {
	return func(l, r ref.Val) ref.Val {
		a, aok := l.(types.Int)
		b, bok := r.(types.Int)
		if aok && bok {
			return integers(op, a, b)
		}
		x, xok := double(l)
		y, yok := double(r)
		if !xok || !yok {
			return types.NewErr("%s %s %s is not defined", typeName(l), op, typeName(r))
		}
		return doubles(op, x, y)
	}
}

func double(v ref.Val) (float64, bool) {
	switch v := v.(type) {
	case types.Int:
		return float64(v), true
	case types.Double:
		return float64(v), true
	}
	return 0, false
}

func integers(op string, a, b types.Int) ref.Val {
	switch op {
	case "+":
		return a.Add(b)
	case "-":
		return a.Subtract(b)
	case "*":
		return a.Multiply(b)
	case "/":
		return a.Divide(b)
	}
	return a.Modulo(b)
}

func doubles(op string, x, y float64) ref.Val {
	var z float64
	switch op {
	case "+":
		z = x + y
	case "-":
		z = x - y
	case "*":
		z = x * y
	case "/":
		if y == 0 {
			return types.NewErr("division by zero")
		}
		z = x / y
	case "%":
		if x != math.Trunc(x) || y != math.Trunc(y) {
			return types.NewErr("%% needs whole numbers")
		}
		if y == 0 {
			return types.NewErr("modulus by zero")
		}
		z = math.Mod(x, y)
	}
	if math.IsInf(z, 0) || math.IsNaN(z) {
		return types.NewErr("the result is too large for a number")
	}
	return types.Double(z)
}

func toString(v ref.Val) ref.Val {
	switch v := v.(type) {
	case types.String:
		return v
	case types.Bool:
		return types.String(strconv.FormatBool(bool(v)))
	case types.Int:
		return types.String(strconv.FormatInt(int64(v), 10))
	case types.Double:
		if math.IsInf(float64(v), 0) || math.IsNaN(float64(v)) {
			return types.NewErr("the number is not finite")
		}
		return types.String(canon.Number(float64(v)))
	case exact:
		return types.String(v.text)
	}
	return types.NewErr("%s can't be made text with string()", typeName(v))
}
