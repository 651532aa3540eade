package schedule_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/model"
	"tutti/model/schedule"
)

