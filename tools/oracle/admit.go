package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	podregistry "k8s.io/kubernetes/pkg/registry/core/pod"
)

// admitted is a pod as the API server would store it, or why it would not.
type admitted struct {
	Pod     *v1.Pod  `json:"pod"`
	Invalid []string `json:"invalid,omitempty"`
}

type admitAnswer struct {
	Admitted []admitted `json:"admitted"`
}

// admit runs defaults, the strategy for creation (which merges matchLabelKeys into selectors) and
// validation. Admission plugins are not run: priorities and tolerations are the caller's.
func admit(pods []*v1.Pod) (*admitAnswer, error) {
	result := &admitAnswer{Admitted: []admitted{}}
	for _, pod := range pods {
		complete(pod)
		status := pod.Status
		internal := &core.Pod{}
		if err := legacyscheme.Scheme.Convert(pod, internal, nil); err != nil {
			return nil, err
		}
		podregistry.Strategy.PrepareForCreate(context.Background(), internal)
		one := admitted{Pod: &v1.Pod{}}
		for _, problem := range podregistry.Strategy.Validate(context.Background(), internal) {
			one.Invalid = append(one.Invalid, problem.Error())
		}
		if err := legacyscheme.Scheme.Convert(internal, one.Pod, nil); err != nil {
			return nil, err
		}
		one.Pod.Status = status
		result.Admitted = append(result.Admitted, one)
	}
	return result, nil
}
