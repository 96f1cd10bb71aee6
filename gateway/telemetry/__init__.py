"""What the gateway tells about itself: public metrics, operator metrics, logs."""

from gateway.telemetry.logs import Level, configure_logs
from gateway.telemetry.metrics import Bounds, OperatorMetrics, PublicMetrics

__all__ = ["Bounds", "Level", "OperatorMetrics", "PublicMetrics", "configure_logs"]
