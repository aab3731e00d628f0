package kit

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// boundless are amounts that take memory and time without end: 1e999999999 is written in eleven characters, and is compared as
// a number of a billion digits; 1e-999999999 is read as one.
var boundless = regexp.MustCompile(`^[-+]?[0-9.]+[eE][-+]?[0-9]{3,}$|^[-+]?[0-9.]{65,}`)

// amounts are the fields of Kubernetes' and KubeVirt's objects that hold an amount, or several by name.
var amounts = map[string]bool{
	"limits": true, "requests": true, "overhead": true, "capacity": true, "hard": true, "sizeLimit": true, "divisor": true,
	"default": true, "defaultRequest": true, "max": true, "min": true, "maxLimitRequestRatio": true,
	"target": true, "guest": true, "maxGuest": true,
}

// CheckAmounts refuses an object in which an amount is so large or so small that to count with it would stall this process.
// It takes an object as JSON has it, and has to be asked before the object is read as its type: reading can be what stalls.
func CheckAmounts(obj any) error { return checkAmounts("", obj, false) }

func checkAmounts(path string, v any, amount bool) error {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if err := checkAmounts(join(path, k), v[k], amount || amounts[k]); err != nil {
				return err
			}
		}
	case []any:
		for i, e := range v {
			if err := checkAmounts(fmt.Sprintf("%s[%d]", path, i), e, amount); err != nil {
				return err
			}
		}
	case string:
		if v = strings.TrimSpace(v); amount && boundless.MatchString(v) {
			return fmt.Errorf("%s is too large or too small an amount to count with: write some digits and a unit, such as 500m or 2Gi", path)
		}
	}
	return nil
}

// BadAmount is where in an object the first string is that should be an amount and is none, by its path, empty if there is
// none. What an object of a type is read with says that there is one, and not where.
func BadAmount(obj any) string { return badAmount("", obj, false) }

func badAmount(path string, v any, amount bool) string {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if at := badAmount(join(path, k), v[k], amount || amounts[k]); at != "" {
				return at
			}
		}
	case []any:
		for i, e := range v {
			if at := badAmount(fmt.Sprintf("%s[%d]", path, i), e, amount); at != "" {
				return at
			}
		}
	case string:
		if _, err := resource.ParseQuantity(v); amount && err != nil {
			return path
		}
	}
	return ""
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}
