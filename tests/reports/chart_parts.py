"""What a chart draws, taken out of its Vega-Lite."""


def layers(chart):
    """Every layer of a chart, those of charts below one another too."""
    for one in chart.get("vconcat", [chart]):
        yield from one["layer"]


def points(chart, kind):
    """What the first layer of a kind draws."""
    return next(
        layer["data"]["values"]
        for layer in layers(chart)
        if layer["mark"]["type"] == kind
    )


def labels(chart):
    """What is written beside bounds."""
    return [
        layer["data"]["values"][0]["label"]
        for layer in layers(chart)
        if layer["mark"]["type"] == "text"
    ]
