// Tells what the OpenAPI document does not say of each API type's fields: what Go's JSON encoder does
// with their zero values, the embedded structs that they belong to, and their numbers in protobuf.
//
// A field that drops vanishes when it is empty; a field that fills appears with its zero value when
// it was not given; a field that does neither is a pointer, kept as given. Out: JSON by model name.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type structFacts struct {
	Drops    []string          `json:"drops,omitempty"`
	Fills    map[string]any    `json:"fills,omitempty"`
	Embedded map[string]string `json:"embedded,omitempty"` // field to the Go names of its structs
	// Numbers of fields, and after a dot those of embedded structs, which are messages of their own.
	Numbers map[string]int `json:"numbers,omitempty"`
}

type named interface{ OpenAPIModelName() string }

var models = map[string]*structFacts{}

func main() {
	must(apiextensions.AddToScheme(scheme.Scheme))
	must(apiregistration.AddToScheme(scheme.Scheme))
	for kind, goType := range scheme.Scheme.AllKnownTypes() {
		if kind.Version != runtime.APIVersionInternal {
			visit(goType)
		}
	}
	must(json.NewEncoder(os.Stdout).Encode(models))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func visit(goType reflect.Type) {
	switch goType.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		visit(goType.Elem())
		return
	case reflect.Struct:
	default:
		return
	}
	instance, isNamed := reflect.New(goType).Interface().(named)
	if !isNamed || models[instance.OpenAPIModelName()] != nil {
		return
	}
	facts := &structFacts{
		Fills: map[string]any{}, Embedded: map[string]string{}, Numbers: map[string]int{},
	}
	models[instance.OpenAPIModelName()] = facts
	if !marshalsItself(goType) {
		collect(goType, "", facts)
	}
}

func marshalsItself(goType reflect.Type) bool {
	_, itself := reflect.New(goType).Interface().(json.Marshaler)
	return itself
}

func collect(goType reflect.Type, embedded string, facts *structFacts) {
	for i := 0; i < goType.NumField(); i++ {
		field := goType.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() {
			continue
		}
		if field.Anonymous && name == "" {
			path := strings.TrimPrefix(embedded+"."+field.Name, ".")
			collectNumber(field, "."+path, facts)
			collect(withoutPointer(field.Type), path, facts)
			continue
		}
		visit(field.Type)
		if embedded != "" && embedded != "TypeMeta" {
			facts.Embedded[name] = embedded
		}
		collectZero(field, name, options, facts)
		if embedded != "TypeMeta" { // which is sent apart, around the object
			collectNumber(field, name, facts)
		}
	}
}

// collectNumber reads a tag such as protobuf:"bytes,1,opt,name=metadata".
func collectNumber(field reflect.StructField, name string, facts *structFacts) {
	parts := strings.Split(field.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return
	}
	number, err := strconv.Atoi(parts[1])
	must(err)
	facts.Numbers[name] = number
}

func collectZero(field reflect.StructField, name, options string, facts *structFacts) {
	isStruct := field.Type.Kind() == reflect.Struct // which omitempty does not omit
	omits := strings.Contains(options, "omitzero") || strings.Contains(options, "omitempty") && !isStruct
	if !omits {
		facts.Fills[name] = zero(field.Type)
	} else if field.Type.Kind() != reflect.Pointer {
		facts.Drops = append(facts.Drops, name)
	}
}

func withoutPointer(goType reflect.Type) reflect.Type {
	if goType.Kind() == reflect.Pointer {
		return goType.Elem()
	}
	return goType
}

// zero gives the JSON of a type's zero value; that of a plain struct is filled by whoever reads it.
func zero(goType reflect.Type) any {
	if goType.Kind() == reflect.Struct && !marshalsItself(goType) {
		return map[string]any{}
	}
	text, err := json.Marshal(reflect.Zero(goType).Interface())
	must(err)
	var value any
	must(json.Unmarshal(text, &value))
	return value
}
