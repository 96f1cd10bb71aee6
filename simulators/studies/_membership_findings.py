def sentences(rows):
    return []
